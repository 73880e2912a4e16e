"""The nouns of kernelskill: frozen records that every room speaks in. No I/O happens here."""

"""Language models behind one protocol: clients, mailboxes, scripts, recordings, and their budget."""

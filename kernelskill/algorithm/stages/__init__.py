"""One launch as several in a row: results that many blocks share, then what is made of them."""

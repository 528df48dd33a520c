//! Files that are cut or garbled never stop the reader, and what lies before the damage comes back.

//! The agent inside the program: census, holder paths, graph walk, armed trace.

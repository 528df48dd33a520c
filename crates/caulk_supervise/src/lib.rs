//! Launches a command, watches its process tree and listens to the agents in it.

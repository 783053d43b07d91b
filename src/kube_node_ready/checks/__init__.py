"""The checks that a node has to pass, one function per fact. Standard library only, and cheap to import."""

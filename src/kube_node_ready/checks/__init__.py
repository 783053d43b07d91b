"""What a node must prove before it gets work, one function a fact. Standard library only, and cheap to import."""

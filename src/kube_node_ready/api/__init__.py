"""What is on the wire and on a Node: objects, paths, reports. Pure; everything else can import it."""

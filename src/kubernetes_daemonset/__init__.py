"""A typed, validated manifest for node agents, and the means to deploy it."""

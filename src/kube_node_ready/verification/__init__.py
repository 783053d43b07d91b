"""What a node needs next: pure decisions about data. No clock, no network, no asyncio."""

"""The workers of a server, several processes that share a port: shared counts, calls between them, and their parent."""

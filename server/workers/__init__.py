"""Several processes that serve one port: who they are, what they count together, and who starts them."""

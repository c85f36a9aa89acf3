"""The parts that all services share: the store with its writer and reader threads, caches, and the change signal."""

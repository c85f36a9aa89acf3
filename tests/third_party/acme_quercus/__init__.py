"""A learner, a query strategy and a reader of files for Quercus, in a package of somebody else's."""

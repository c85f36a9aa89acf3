"""Version 1 of the wire, package ``quercus.v1``: the ``.proto`` files and the code generated from them."""

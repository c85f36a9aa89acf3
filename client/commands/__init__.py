"""The commands of ``quercus``, one module each."""

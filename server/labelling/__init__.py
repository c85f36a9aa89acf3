"""Labelling: queries leased and answered, labels stated, answers combined."""

"""Crowds: how reliable labellers are, estimated from where their answers agree (docs/theory/crowds.md)."""

if __name__ != "quercus.crowds":  # by another name every class would exist twice
    raise ImportError(f"import quercus.crowds, not {__name__}")

from quercus.crowds.answers import CrowdAnswers
from quercus.crowds.coin import PRIOR_RELIABILITY
from quercus.crowds.confusion import CrowdEstimate, estimate_crowd

__all__ = ["PRIOR_RELIABILITY", "CrowdAnswers", "CrowdEstimate", "estimate_crowd"]

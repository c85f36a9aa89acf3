"""The reliability of labellers, estimated from the agreement of their answers (docs/theory/crowds.md)."""

if __name__ != "quercus.labelling.crowds":  # by another name every class would exist twice
    raise ImportError(f"import quercus.labelling.crowds, not {__name__}")

from quercus.labelling.crowds.answers import CrowdAnswers
from quercus.labelling.crowds.coin import PRIOR_RELIABILITY
from quercus.labelling.crowds.confusion import CrowdEstimate, estimate_crowd

__all__ = ["PRIOR_RELIABILITY", "CrowdAnswers", "CrowdEstimate", "estimate_crowd"]

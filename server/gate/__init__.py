"""Admission of calls: access control, limits, and the audit log."""

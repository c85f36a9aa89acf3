"""The grower and its learners: processes that fold the log of every model into trees and queries."""

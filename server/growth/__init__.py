"""The grower and its learners: processes that turn the log of every model into trees and queries."""

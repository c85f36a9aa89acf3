"""Expected statistics for SQLite's query planner, written once, after the schema was created or upgraded.

Without statistics, SQLite assumes ten rows for each value of an indexed column, and reads a whole model instead of
looking up ids: 1,000 ids among 50,000 rows took 18 ms instead of 0.8 ms.
"""

from sqlalchemy import Connection

# Table, index, and the number of rows that share the values of its first 0, 1, 2, ... columns.
EXPECTED_ROWS = (
    ("model", "sqlite_autoindex_model_1", "1000 1"),
    ("model_change", "ix_model_change_number", "1000 1"),
    ("log", "log", "1000000 100000 1"),
    ("log", "ix_log_id", "1000000 100000 1"),
    ("log", "ix_log_instance", "10000 1000 1"),
    ("log", "ix_log_said", "10000 1000 300 1"),
    ("log", "ix_log_spoken", "10000 1000 1"),
    ("log", "ix_log_request", "10000 1000 100 1"),
    ("query", "sqlite_autoindex_query_1", "10000 1000 1"),
    ("query", "ix_query_agenda", "10000 1000 200 1"),
    ("query", "ix_query_settled", "10000 1000 1"),
    ("query", "ix_query_labeller", "10000 1000 500 1"),
    ("query", "ix_query_live", "1000 100 1"),
    ("query", "ix_query_expiry", "100 1"),
    ("query", "ix_query_postponed", "10 1"),
    ("query_history", "ix_query_history_query", "100000 10000 5"),
    ("query_history", "ix_query_history_skipped", "100000 10000 5 2"),
    ("query_history", "ix_query_history_labeller", "100000 10000 500 200"),
    ("query_history", "ix_query_history_clock", "100000 1"),
    ("query_history", "ix_query_history_step", "100000 10000 2000 1"),
)


def write_statistics(connection: Connection) -> None:
    """Write the expected numbers of rows of each index."""
    connection.exec_driver_sql("ANALYZE")  # creates the table of statistics
    connection.exec_driver_sql("DELETE FROM sqlite_stat1")
    for table, index, rows in EXPECTED_ROWS:
        connection.exec_driver_sql("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", (table, index, rows))
    connection.exec_driver_sql("ANALYZE sqlite_schema")  # makes SQLite read the statistics

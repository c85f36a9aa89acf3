"""Archives: copies of logs as Parquet files, and models rebuilt from them.

`manifest` lists the files of a model, `pieces` writes and reads one file, `writing` adds to an archive, `rebuilding`
creates models from it.
"""

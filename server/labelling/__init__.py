"""The calls of labellers: leasing and answering queries, stating labels, and deciding disputes."""

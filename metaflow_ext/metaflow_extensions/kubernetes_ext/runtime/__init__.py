"""The imperative shell around the pure core: submit, watch, report, clean up. Clock, sleep and reporter are arguments."""

"""What kube-controller-manager, the scheduler and the JobSet controller do, in one loop on the store.

Every controller is a pair: pure decisions (objects and a time in, actions out) and a thin shell that reads the
store, carries the actions out and reports Events. `manager.Manager` runs them all, one key at a time.
"""

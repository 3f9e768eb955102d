"""Starting Touchstone: on one machine, in compose and in Kubernetes."""

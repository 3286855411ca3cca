"""Program of a graph: its calls as elementary steps and calls that stay whole, before it is known which of them run as one."""

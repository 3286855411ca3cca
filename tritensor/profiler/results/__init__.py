"""Results of a recording, made when it is over: events, their averages, tables, traces, memory over time."""

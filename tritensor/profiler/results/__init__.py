"""Results of a recording, made: events, their averages, tables, traces, memory over time."""

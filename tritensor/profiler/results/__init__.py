"""What is made of a recording when it is over: events, their averages, tables, traces, memory over time."""

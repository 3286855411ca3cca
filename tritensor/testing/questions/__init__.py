"""The six questions that every op of the table is asked, in every dtype and layout, on every device."""

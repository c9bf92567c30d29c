"""The report: one HTML page that needs nothing but itself. Pure rendering: values in, text out."""

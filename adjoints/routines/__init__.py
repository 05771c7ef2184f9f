"""The derivatives of routines: how they are found, framed, limited in depth, and made repeatable."""

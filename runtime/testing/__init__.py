"""Fakes that ship with the product: scripted model server, event recorder, fake clock."""

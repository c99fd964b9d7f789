"""Graphs as Dynamo captures them, brought into the form that the importer takes."""

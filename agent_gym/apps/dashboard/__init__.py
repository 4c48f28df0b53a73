"""The dashboard: what the stores hold, as pages for people, behind ``/dashboard`` of the service.

Belongs here: pages (``pages``, what is shown), the questions they ask (``figures``, what the rooms
below answer), their words in each language (``texts``), and the shell that holds them.
May import: every room below; the service, whose guard stands before every page.
Hands on: nothing.
"""

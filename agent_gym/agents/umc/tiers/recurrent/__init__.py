"""The recurrent tier: a small network with a memory, a hidden state and several bootstrapped heads.

It is trained with torch (``fitting``) and followed without it (``inference``), so a model that was
fitted elsewhere can be used where torch is not installed.
"""

"""How well a way of cutting keeps what is needed later: `jev eval`.

Transcripts × policies × judges, compared at equal size. `corpus` reads transcripts, `needed` finds which exact strings
of old tool output a later step writes, `score` counts which of them a shortened prefix has lost, `baselines`,
`rankers`, `stock` and `engine_policy` shorten, `run` brings them together, `statistics` and `report` say what follows.
`passes` and `cost` replay whole sessions. Nothing here is used by the engine.
"""

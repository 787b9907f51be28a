"""A member of a consumer group, one program per client. Each is started as `PROGRAM OPTIONS_JSON` with

    bootstrap, group, topics, batch      how many records it handles before it commits
    assignor      range, roundrobin, sticky, cooperative-sticky; the client's default where it is null
    instance      group.instance.id, or null
    session_ms, rebalance_ms
    ask           it asks before it commits, and waits for the answer
    protocol      "consumer" for the group protocol of KIP-848 (where the client has it)

and prints, as they happen,

    owns TOPIC:PARTITION ...             the whole of what it owns, after every change
    gave TOPIC:PARTITION ...             what it was told to give up
    record TOPIC PARTITION OFFSET VALUE
    commit?                              it will commit all it has printed once "commit" comes on its stdin
    committed
    commit failed WHY
    fenced                               another member has its instance id; it ends
    left                                 the last line of one that was told "leave" on its stdin and left the group
"""

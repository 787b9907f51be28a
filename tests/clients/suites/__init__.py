"""One program per client. Each is started as `PROGRAM BOOTSTRAP CORPUS_JSON TOPIC_PREFIX` and prints, as checks end,

    ok NAME
    not ok NAME # what was wrong
    skip NAME # why
    done

The last line tells the harness that the program reached its end: one that stops before it has failed.
"""

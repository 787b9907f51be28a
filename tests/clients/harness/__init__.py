"""What the client suites and the crash test share: a broker to run against, the records to send, a report."""

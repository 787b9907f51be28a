"""kafka-python's admin client on a group that has one member, and then none: see group_scenarios/of_tools.py."""

import sys

from kafka import KafkaAdminClient, TopicPartition

bootstrap, group, topic = sys.argv[1:]
admin = KafkaAdminClient(bootstrap_servers=bootstrap)


def main():
    assert group in str(admin.list_groups()), admin.list_groups()
    described = admin.describe_groups([group])
    assert "Stable" in str(described) and topic in str(described), described
    print("seen with its member", flush=True)
    sys.stdin.readline()
    described = admin.describe_groups([group])
    assert "Empty" in str(described), described
    offsets = admin.list_group_offsets([group])
    print(offsets)
    places = offsets[group]
    assert {place: at.offset for place, at in places.items()} == {TopicPartition(topic, p): 20 for p in (0, 1)}, offsets
    admin.delete_groups([group])
    assert group not in str(admin.list_groups()), admin.list_groups()
    admin.close()


main()

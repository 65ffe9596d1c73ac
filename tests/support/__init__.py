"""What several folders of tests share; a helper of one folder stands in that folder.

| room | for |
| --- | --- |
| `processes/` | programs that a test starts, stops and hangs: their ports, gates before them, clocks, waiting |
| `java/` | a Java, class paths, properties files, Kafka's tools and Java clients |
| `zookeeper/` | servers and ensembles; znodes of tokens, plain and sealed, in ZooKeeper and in memory |
| `brokers/` | real Kafka: one broker with ZooKeeper, clusters without, and their operator |
| `nodes/` | kafka-dt itself as processes: nodes, gateways, a node in memory, their audit files |
| `server/` | parts of a worker in the test's own process, on transports without a socket |
| `protocol/` | bytes on the wire: raw connections, transcripts, odd bodies, every message of the schema |
| `identity/` | who may do what: certificates, issuers of bearer tokens, ACLs, SCRAM users, times of logins |
| `tokens/` | stores of tokens in memory, nodes on them, and the contract that each store keeps |
| `spark/` | Spark sessions and jobs, ingests, and what they read and write |
| `docs/` | the code and the worked examples in the project's Markdown |
"""

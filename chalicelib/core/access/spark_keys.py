"""Spark properties that load no code and run no command, whatever their values are (O10).

Spark has many properties that name a class, a command or an address from which code is loaded, and each release adds
some. So a property that is not listed here counts as one of these. The sources, without what the second rule leaves
out:

https://spark.apache.org/docs/3.5.5/configuration.html
https://spark.apache.org/docs/3.5.5/sql-performance-tuning.html
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/jobs-spark.html
"""

from __future__ import annotations

import re
from functools import cache

# Properties with the addresses of files: each of the files counts as a file of code.
OF_FILES = frozenset({"spark.jars", "spark.submit.pyFiles", "spark.files", "spark.archives"})

# The names after `spark.`; * stands for any text.
_TUNING = """
app.name logConf log.level log.callerContext default.parallelism
driver.cores driver.memory* driver.maxResultSize driver.timeout driver.resource.*.amount
executor.cores executor.memory* executor.instances executor.heartbeatInterval executor.pyspark.memory
executor.resource.*.amount executor.failuresValidityInterval executor.maxNumFailures
task.cpus task.maxFailures task.resource.*.amount task.reaper.*
emr-serverless.driver.disk* emr-serverless.executor.disk* emr-serverless.memoryOverheadFactor
emr-serverless.allocation.batch.size
dynamicAllocation.* memory.* shuffle.* reducer.* broadcast.* rdd.compress checkpoint.compress
io.compression.lz4.* io.compression.snappy.* io.compression.zstd.*
kryo.referenceTracking kryo.registrationRequired kryo.unsafe kryoserializer.buffer*
files.fetchTimeout files.useFetchCache files.overwrite files.maxPartitionBytes files.openCostInBytes
storage.memoryMapThreshold storage.replication.proactive storage.decommission.* decommission.*
cleaner.* locality.* speculation speculation.* excludeOnFailure.* stage.* barrier.sync.timeout
network.timeout network.timeoutInterval network.maxRemoteBlockSizeFetchToMem
rpc.askTimeout rpc.lookupTimeout rpc.message.maxSize rpc.numRetries rpc.retry.wait
scheduler.mode scheduler.*RegisteredResources* scheduler.revive.interval scheduler.barrier.*
scheduler.listenerbus.* scheduler.excludeOnFailure.*
python.worker.memory python.worker.reuse
ui.enabled ui.port ui.retained* ui.killEnabled ui.showConsoleProgress ui.liveUpdate.* ui.timeline* ui.dagGraph.*
ui.prometheus.enabled ui.threadDumpsEnabled
eventLog.* history.retainedApplications history.ui.maxApplications history.fs.cleaner.* history.fs.update.interval
hadoop.mapreduce.fileoutputcommitter.algorithm.version hadoop.fs.s3.maxConnections hadoop.fs.s3.maxRetries
hadoop.fs.s3a.connection.maximum hadoop.fs.s3a.threads.max
sql.adaptive.* sql.ansi.* sql.autoBroadcastJoinThreshold sql.avro.* sql.broadcastTimeout sql.bucketing.*
sql.caseSensitive sql.cbo.* sql.codegen.* sql.columnVector.offheap.enabled sql.crossJoin.enabled sql.csv.*
sql.datetime.* sql.debug.maxToStringFields sql.decimalOperations.* sql.exchange.reuse
sql.execution.arrow.* sql.execution.broadcastHashJoin.* sql.execution.fastFailOnFileFormatOutput sql.execution.pandas.*
sql.execution.pyspark.udf.simplifiedTraceback.enabled sql.execution.pythonUDF.arrow.* sql.execution.pythonUDTF.arrow.*
sql.execution.rangeExchange.* sql.execution.removeRedundant* sql.execution.replaceHashWithSortAgg
sql.execution.reuseSubquery sql.execution.sortBeforeRepartition sql.execution.topKSortFallbackThreshold
sql.execution.useObjectHashAggregateExec sql.execution.usePartitionEvaluator sql.files.*
sql.groupBy* sql.hive.convertMetastore* sql.hive.metastorePartitionPruning* sql.hive.manageFilesourcePartitions
sql.inMemoryColumnarStorage.* sql.join.* sql.json.* sql.jsonGenerator.* sql.leafNodeDefaultParallelism sql.limit.*
sql.mapKeyDedupPolicy sql.maxMetadataStringLength sql.maxPlanStringLength sql.optimizer.* sql.orc.* sql.orderByOrdinal
sql.parquet.* sql.pivotMaxValues sql.readSideCharPadding sql.repl.eagerEval.* sql.session.timeZone sql.shuffle.*
sql.shuffledHashJoinFactor sql.sort.* sql.sortMergeJoinExec.* sql.sources.bucketing.* sql.sources.ignoreDataLocality
sql.sources.parallelPartitionDiscovery.* sql.sources.partition* sql.sources.v2.bucketing.* sql.statistics.*
sql.storeAssignmentPolicy sql.subexpressionElimination.* sql.timestampType sql.ui.* sql.windowExec.* sql.legacy.*
"""
# What the name of a property says if its value is a class, a command, a file, a folder or an address. No family above
# has such a property without one of these words.
_NAMES_MORE = (
    r"class|impl\b|provider|factory|extension|plugin|listeners\b|\.serializer\b|manager|registrator|codec|module"
    r"|jars|package|path|dir\b|directory|(?<!al)location|(?<!per)file$|ur[il]\b|host\b|address|proxy"
    r"|script|command|options|java\b|python$|mapper$|env\b|filters|acls|redaction|custom"
)
# Codecs by the names that Spark knows, and the address to which jobs sign their requests to Sluice.
_ALSO = r"spark\.sql\.(avro|orc|parquet)\.compression\.codec|spark\.emr-serverless\.driverEnv\.SLUICE_API_URL"


@cache  # most Lambdas see no Spark property
def _harmless() -> re.Pattern[str]:
    names = (re.escape(f"spark.{name}").replace(r"\*", r"[\w.-]*") for name in _TUNING.split())
    return re.compile("|".join(names), re.ASCII)


def is_harmless(key: str) -> bool:
    """Whether a Spark property loads no code and runs no command, whatever its value is."""
    if re.fullmatch(_ALSO, key):
        return True
    return _harmless().fullmatch(key) is not None and re.search(_NAMES_MORE, key, re.IGNORECASE) is None

"""Which Spark properties are known to load no code."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pyspark
import pytest

from chalicelib.core.access.spark_keys import OF_FILES, is_harmless
from chalicelib.core.targets import registry
from sluice.convert.aws_targets import spark_target

ROOT = Path(__file__).parents[3]
_OF_CONFIGURATION = re.compile(r"(SQLConf|internal/config|Conf|HiveUtils|Python|History).*\.class$")
DANGEROUS = """
spark.sql.hive.metastore.jars spark.sql.hive.metastore.jars.path spark.sql.hive.metastore.sharedPrefixes
spark.repl.class.uri spark.repl.class.outputDir spark.repl.local.jars
spark.worker.resource.gpu.discoveryScript spark.driver.resource.gpu.discoveryScript
spark.executor.resource.gpu.discoveryScript spark.resources.discoveryPlugin
spark.driver.extraJavaOptions spark.executor.extraJavaOptions spark.driver.defaultJavaOptions
spark.executor.defaultJavaOptions spark.driver.extraClassPath spark.executor.extraLibraryPath
spark.driver.userClassPathFirst spark.jars.packages spark.jars.repositories spark.jars.ivy spark.jars.ivySettings
spark.plugins spark.plugins.defaultList spark.executor.plugins spark.extraListeners
spark.sql.extensions spark.sql.catalog.x spark.sql.catalog.x.catalog-impl spark.sql.catalog.x.io-impl
spark.sql.queryExecutionListeners spark.sql.streaming.streamingQueryListeners spark.sql.cache.serializer
spark.sql.sources.commitProtocolClass spark.sql.sources.outputCommitterClass spark.sql.sources.default
spark.sql.parquet.output.committer.class spark.sql.streaming.stateStore.providerClass
spark.sql.streaming.checkpointFileManagerClass spark.sql.adaptive.customCostEvaluatorClass
spark.sql.defaultUrlStreamHandlerFactory.enabled spark.sql.connect.extensions.relation.classes
spark.connect.grpc.interceptor.classes
spark.executorEnv.PYTHONPATH spark.executorEnv.LD_PRELOAD spark.emr-serverless.driverEnv.PYSPARK_PYTHON
spark.pyspark.python spark.pyspark.driver.python spark.python.daemon.module spark.python.worker.module
spark.r.command spark.r.driver.command
spark.submit.deployMode spark.master spark.yarn.dist.jars spark.kubernetes.driver.podTemplateFile
spark.serializer spark.closure.serializer spark.kryo.registrator spark.kryo.classesToRegister
spark.io.compression.codec spark.eventLog.compression.codec spark.shuffle.mapStatus.compression.codec
spark.shuffle.manager spark.shuffle.sort.io.plugin.class spark.shuffle.push.server.mergedShuffleFileManagerImpl
spark.broadcast.factory spark.ui.filters spark.ui.proxyRedirectUri spark.metrics.conf spark.driver.log.layout
spark.log4j.configuration spark.hadoop.log4j.configuration
spark.eventLog.dir spark.local.dir spark.sql.warehouse.dir spark.checkpoint.dir spark.history.fs.logDirectory
spark.scheduler.allocation.file spark.storage.decommission.fallbackStorage.path
spark.hadoop.fs.s3.impl spark.hadoop.fs.s3.customAWSCredentialsProvider spark.hadoop.fs.s3a.endpoint
spark.hadoop.hive.metastore.uris spark.hadoop.hive.metastore.client.factory.class
spark.hadoop.javax.jdo.option.ConnectionURL spark.hive.metastore.uris
spark.driver.host spark.driver.bindAddress spark.authenticate.secret spark.ssl.keyStore
spark.io.encryption.commons.config.x spark.network.crypto.config.x spark.redaction.regex
spark.sql.execution.pyspark.python spark.sql.execution.columnar.unknown spark.storage.replication.policy
spark.storage.replication.topologyMapper spark.storage.replication.topologyFile spark.shuffle.new.python
spark.unknown spark.sql.unknown spark.sql.SHUFFLE.partitions
""".split()
TUNING = """
spark.app.name spark.log.level spark.default.parallelism spark.driver.cores spark.driver.memory
spark.driver.memoryOverhead spark.driver.memoryOverheadFactor spark.driver.maxResultSize spark.executor.cores
spark.executor.memory spark.executor.memoryOverhead spark.executor.instances spark.executor.pyspark.memory
spark.executor.heartbeatInterval spark.task.maxFailures spark.emr-serverless.driver.disk
spark.emr-serverless.executor.disk spark.emr-serverless.executor.disk.type spark.emr-serverless.memoryOverheadFactor
spark.emr-serverless.allocation.batch.size spark.dynamicAllocation.enabled spark.dynamicAllocation.initialExecutors
spark.dynamicAllocation.maxExecutors spark.dynamicAllocation.shuffleTracking.enabled
spark.dynamicAllocation.executorAllocationRatio spark.memory.fraction spark.memory.offHeap.size
spark.shuffle.file.buffer spark.shuffle.io.maxRetries spark.shuffle.io.preferDirectBufs spark.reducer.maxSizeInFlight
spark.kryoserializer.buffer.max spark.rdd.compress spark.speculation spark.speculation.quantile spark.network.timeout
spark.rpc.message.maxSize spark.scheduler.mode spark.scheduler.listenerbus.eventqueue.capacity
spark.python.worker.reuse spark.ui.enabled spark.ui.retainedStages spark.eventLog.enabled
spark.eventLog.rolling.maxFileSize spark.history.fs.cleaner.maxAge spark.sql.shuffle.partitions
spark.sql.session.timeZone spark.sql.adaptive.enabled spark.sql.adaptive.coalescePartitions.minPartitionSize
spark.sql.adaptive.skewJoin.skewedPartitionFactor spark.sql.autoBroadcastJoinThreshold
spark.sql.files.maxPartitionBytes spark.sql.parquet.compression.codec spark.sql.parquet.mergeSchema
spark.sql.parquet.datetimeRebaseModeInWrite spark.sql.sources.partitionOverwriteMode
spark.sql.execution.arrow.pyspark.enabled spark.sql.optimizer.dynamicPartitionPruning.enabled
spark.sql.legacy.timeParserPolicy spark.sql.ansi.enabled spark.sql.caseSensitive spark.sql.files.maxRecordsPerFile
spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version
""".split()


@pytest.mark.parametrize("key", DANGEROUS)
def test_o10_a_property_that_may_load_code_is_not_harmless(key: str) -> None:
    assert not is_harmless(key)


@pytest.mark.parametrize("key", TUNING)
def test_o10_sizes_times_and_switches_are_harmless(key: str) -> None:
    assert is_harmless(key)


def test_o10_all_that_passes_of_a_spark_release_was_read() -> None:
    """A new release of Spark has names that nobody has read: read them, and add the harmless ones to the file."""
    names: set[bytes] = set()
    for jar in Path(pyspark.__file__).parent.glob("jars/spark-*.jar"):
        with zipfile.ZipFile(jar) as packed:
            for entry in filter(_OF_CONFIGURATION.search, packed.namelist()):
                names.update(re.findall(rb"spark\.[A-Za-z][A-Za-z0-9_.-]+", packed.read(entry)))
    assert len(names) > 1_000
    read = (Path(__file__).parent / "spark_keys_read.txt").read_text().split()
    assert sorted({name.decode() for name in names if is_harmless(name.decode())} - set(read)) == []
    assert [name for name in read if not is_harmless(name)] == []


def test_o10_no_trick_of_the_key_passes() -> None:
    for key in (
        "spark.sql.shuffle.partitions\n",
        " spark.ui.enabled",
        "spark.ui.enabled=x",
        "Spark.ui.enabled",
        "spark.",
        "",
    ):
        assert not is_harmless(key)


def test_o10_conversions_of_a_command_line_meet_the_same_rule() -> None:
    """The text of `sparkSubmitParameters` becomes properties, or no target."""
    text = "--conf spark.executor.cores=4 --conf spark.plugins=com.example.X --py-files s3://code/lib.py"
    target = spark_target("00f1", "arn:aws:iam::123456789012:role/etl", "s3://code/job.py", [], text)
    assert target is not None
    stored = target | {"arguments": []}
    named = list(registry.of_type("emr_serverless").named(stored))
    assert [each.value for each in named if each.kind == "entry_points"] == ["s3://code/job.py", "s3://code/lib.py"]
    assert {each.value: is_harmless(each.value) for each in named if each.kind == "spark"} == {"spark.plugins": False}
    assert spark_target("00f1", "r", "s3://code/job.py", [], "--jars s3://x/y.jar") is None


def test_o10_what_examples_and_pages_set_is_harmless() -> None:
    """Every property that a workflow of the project's own documents sets: ``spark.x: "1"`` in YAML. The page of lineage
    sets a listener, and says that an allow-list must name it."""
    pages = [
        *(page for page in ROOT.glob("docs/**/*.md") if page.name != "lineage.md"),
        *ROOT.glob("examples/**/*.y*ml"),
        *ROOT.glob("sluice/**/*.yaml"),
    ]
    found = {
        key for page in pages for key in re.findall(r"(?m)[ {](spark\.[\w.-]+): ", page.read_text(errors="replace"))
    }
    assert {"spark.driver.memory", "spark.executor.cores", "spark.emr-serverless.driverEnv.SLUICE_API_URL"} <= found
    assert {key for key in found if not is_harmless(key)} - OF_FILES == set()

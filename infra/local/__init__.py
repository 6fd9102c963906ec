"""The local cloud: ministack for AWS, Sluice's own emulator for EMR Serverless, the deployed template for Sluice."""

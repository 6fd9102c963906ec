"""The cloud on a laptop: ministack for AWS, our emulator for EMR Serverless, the deployed template for Sluice."""

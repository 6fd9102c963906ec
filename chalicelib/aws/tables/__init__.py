"""The three DynamoDB tables: keys, items, statements of writes, reads and retries."""

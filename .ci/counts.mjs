// Prints what Vitest's JSON report counted: the names of skipped tests, then one line of counts.
// Fails where a test failed, where none passed, or where there is no report.
import { existsSync, readFileSync } from 'node:fs'

const file = process.argv[2]
const none = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] }
const report = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : none
const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults)
for (const { fullName, status } of tests) if (status === 'skipped' || status === 'todo') console.log(`not run: ${fullName}`)
const skipped = report.numPendingTests + report.numTodoTests
console.log(`${report.numPassedTests} passed, ${report.numFailedTests} failed, ${skipped} skipped`)
if (report.numFailedTests > 0 || report.numPassedTests === 0) process.exitCode = 1

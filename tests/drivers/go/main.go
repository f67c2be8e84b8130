// Work that go-sql-driver/mysql must be able to do; prints facts, the same on every way to a server.
//
// Arguments: the port, and the schema. Facts that depend on a server's ids or clock are left out.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

const workers = 16

// A killed SLEEP() is no error everywhere: this looks at each of a thousand million rows.
const endless = "SELECT COUNT(*) FROM t a, t b, t c WHERE a.id + b.id + c.id = -1"

func must(err error) {
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}

func number(err error) uint16 {
	var failure *mysql.MySQLError
	if errors.As(err, &failure) {
		return failure.Number
	}
	return 0
}

type one interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func value(on one, query string, args ...any) string {
	var value sql.NullString
	must(on.QueryRowContext(context.Background(), query, args...).Scan(&value))
	if !value.Valid {
		return "NULL"
	}
	return value.String
}

func open(more string) *sql.DB {
	if os.Getenv("DRIVER_TLS") != "" {
		more += "&tls=skip-verify"
	}
	dsn := fmt.Sprintf("app:app@tcp(127.0.0.1:%s)/%s?maxAllowedPacket=0%s", os.Args[1], os.Args[2], more)
	db, err := sql.Open("mysql", dsn)
	must(err)
	return db
}

func conn(db *sql.DB) *sql.Conn {
	conn, err := db.Conn(context.Background())
	must(err)
	return conn
}

func exec(db *sql.DB, query string, args ...any) int64 {
	result, err := db.Exec(query, args...)
	must(err)
	rows, err := result.RowsAffected()
	must(err)
	return rows
}

func session(db *sql.DB) {
	odd := open("&charset=latin1&time_zone=%27%2B03%3A00%27&sql_mode=%27ANSI_QUOTES%27")
	defer odd.Close()
	fmt.Println("set at login:", value(odd, "SELECT CONCAT_WS(' ', @@character_set_client, @@time_zone, @@sql_mode)"))
	fmt.Println("latin1:", value(odd, "SELECT HEX(CONVERT(? USING utf8mb4))", "\xe9"))
	fmt.Println("usual:", value(db, "SELECT CONCAT_WS(' ', @@character_set_client, @@autocommit)"))
	fmt.Println("epoch:", value(odd, "SELECT FROM_UNIXTIME(0)"))
	fmt.Println("emoji:", value(db, "SELECT ?", "caf\u00e9 \U0001F600"))
}

func transactions(db *sql.DB) {
	exec(db, "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50), n DECIMAL(10,2), at DATETIME(6), data LONGBLOB)")
	for _, commits := range []bool{true, false} {
		tx, err := db.Begin()
		must(err)
		result, err := tx.Exec("INSERT INTO t (name, n) VALUES (?, 12.5), ('b', -1)", "a")
		must(err)
		id, _ := result.LastInsertId()
		fmt.Println("inserted:", id, "inside:", value(tx, "SELECT COUNT(*) FROM t"), "outside:", value(db, "SELECT COUNT(*) FROM t"))
		if commits {
			must(tx.Commit())
		} else {
			must(tx.Rollback())
		}
	}
	fmt.Println("committed:", value(db, "SELECT COUNT(*) FROM t"))
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true})
	must(err)
	_, err = tx.Exec("DELETE FROM t")
	fmt.Println("read only:", number(err))
	must(tx.Rollback())
}

func deadlock(db *sql.DB) {
	exec(db, "CREATE TABLE d (id INT PRIMARY KEY, n INT)")
	exec(db, "INSERT INTO d VALUES (1, 0), (2, 0)")
	var both, done sync.WaitGroup
	var met atomic.Int32
	both.Add(2)
	done.Add(2)
	for first := 1; first <= 2; first++ {
		go func() {
			defer done.Done()
			for try := 0; ; try++ {
				tx, err := db.Begin()
				must(err)
				_, err = tx.Exec("UPDATE d SET n = n + 1 WHERE id = ?", first)
				if err == nil {
					if try == 0 {
						both.Done()
						both.Wait()
					}
					_, err = tx.Exec("UPDATE d SET n = n + 1 WHERE id = ?", 3-first)
				}
				if err == nil {
					must(tx.Commit())
					return
				}
				if number(err) != 1213 {
					must(err)
				}
				met.Add(1)
				must(tx.Rollback())
			}
		}()
	}
	done.Wait()
	fmt.Println("deadlock:", met.Load() > 0, value(db, "SELECT GROUP_CONCAT(n ORDER BY id) FROM d"))
}

func prepared(db *sql.DB) {
	statement, err := db.Prepare("SELECT ? + 1, ?, ? IS NULL, ?")
	must(err)
	at := time.Date(2020, 2, 29, 1, 2, 3, 456789000, time.UTC)
	for n := range 3 {
		var sum, null, when string
		var text []byte
		must(statement.QueryRow(int64(n)<<40, []byte{0, 255, byte(n)}, nil, at).Scan(&sum, &text, &null, &when))
		fmt.Println("prepared:", sum, text, null, when)
	}
	must(statement.Close())
	_, err = db.Prepare("SELECT * FROM missing WHERE id = ?")
	fmt.Println("not prepared:", number(err))
	insert, err := db.Prepare("INSERT INTO t (name) VALUES (?)")
	must(err)
	for n := range 200 {
		_, err := insert.Exec(fmt.Sprint("n", n))
		must(err)
	}
	must(insert.Close())
	marks := strings.TrimSuffix(strings.Repeat("(?),", 1000), ",")
	names := make([]any, 1000)
	for n := range names {
		names[n] = fmt.Sprint("batch", n)
	}
	fmt.Println("batch:", exec(db, "INSERT INTO t (name) VALUES "+marks, names...), value(db, "SELECT COUNT(DISTINCT name) FROM t"))
}

func big(db *sql.DB) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 6<<20/16)
	exec(db, "INSERT INTO t (name, data) VALUES ('big', ?)", data)
	var back []byte
	must(db.QueryRow("SELECT data FROM t WHERE name = ?", "big").Scan(&back))
	fmt.Printf("big: %d %x %t\n", len(back), sha256.Sum256(back), bytes.Equal(back, data))
}

func cancelled(db *sql.DB) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	var slept int
	err := db.QueryRowContext(ctx, "SELECT SLEEP(30)").Scan(&slept)
	fmt.Println("cancelled:", errors.Is(err, context.DeadlineExceeded), "after it:", value(db, "SELECT 1"))
	victim := conn(db)
	defer victim.Close()
	id := value(victim, "SELECT CONNECTION_ID()")
	ended := make(chan error)
	go func() {
		_, err := victim.ExecContext(context.Background(), endless)
		ended <- err
	}()
	for value(db, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE ?", endless) == "0" {
		time.Sleep(10 * time.Millisecond)
	}
	exec(db, "KILL QUERY "+id)
	fmt.Println("killed:", number(<-ended), value(victim, "SELECT name FROM t WHERE id = 1"))
}

func reconnects(db *sql.DB) {
	victim := conn(db)
	id := value(victim, "SELECT CONNECTION_ID()")
	exec(db, "KILL "+id)
	_, err := victim.ExecContext(context.Background(), "DO 1")
	for err == nil {
		_, err = victim.ExecContext(context.Background(), "DO 1")
	}
	victim.Close()
	fmt.Println("lost: true", "again:", value(db, "SELECT 'here'"))
}

func crowd(db *sql.DB) {
	exec(db, "CREATE TABLE w (worker INT PRIMARY KEY, n INT)")
	var done sync.WaitGroup
	var foreign atomic.Int32
	for worker := range workers {
		done.Add(1)
		go func() {
			defer done.Done()
			conn := conn(db)
			defer conn.Close()
			ctx := context.Background()
			set := fmt.Sprintf("SET time_zone = '+%02d:00', @worker = %d, lock_wait_timeout = %d", worker%12, worker, 100+worker)
			_, err := conn.ExecContext(ctx, set)
			must(err)
			_, err = conn.ExecContext(ctx, "INSERT INTO w VALUES (?, 0)", worker)
			must(err)
			expected := fmt.Sprintf("+%02d:00 %d %d", worker%12, worker, 100+worker)
			for range 20 {
				tx, err := conn.BeginTx(ctx, nil)
				must(err)
				_, err = tx.Exec("UPDATE w SET n = n + 1 WHERE worker = ?", worker)
				must(err)
				if value(tx, "SELECT CONCAT_WS(' ', @@time_zone, @worker, @@lock_wait_timeout)") != expected {
					foreign.Add(1)
				}
				must(tx.Commit())
				if value(conn, "SELECT CONCAT_WS(' ', @@time_zone, @worker, @@lock_wait_timeout)") != expected {
					foreign.Add(1)
				}
			}
		}()
	}
	done.Wait()
	fmt.Println("crowd:", foreign.Load(), value(db, "SELECT CONCAT(COUNT(*), ' ', SUM(n)) FROM w"))
}

func main() {
	db := open("")
	db.SetMaxOpenConns(workers)
	db.SetMaxIdleConns(workers)
	defer db.Close()
	session(db)
	transactions(db)
	deadlock(db)
	prepared(db)
	big(db)
	cancelled(db)
	reconnects(db)
	crowd(db)
	fmt.Println("done")
}

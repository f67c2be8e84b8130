// What database/sql with go-sql-driver says of a connection that its server ends.
//
// Arguments: the port, the schema, statements before, the statement. Prints CONNECTION_ID(), waits for
// a line, runs the statement and prints what came of it. Under TLS where DRIVER_TLS is set.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

func main() {
	mysql.SetLogger(log.New(io.Discard, "", 0))
	port, schema, setup, statement := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	more := ""
	if os.Getenv("DRIVER_TLS") != "" {
		more = "?tls=skip-verify"
	}
	db, err := sql.Open("mysql", "app:app@tcp(127.0.0.1:"+port+")/"+schema+more)
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	var id, again int
	if err := db.QueryRow("SELECT CONNECTION_ID()").Scan(&id); err != nil {
		panic(err)
	}
	for _, text := range strings.Split(setup, ";") {
		if text == "" {
			continue
		}
		if _, err := db.Exec(text); err != nil {
			panic(err)
		}
	}
	fmt.Println(id)
	bufio.NewReader(os.Stdin).ReadString('\n')
	_, err = db.ExecContext(context.Background(), statement)
	var failure *mysql.MySQLError
	switch {
	case err == nil:
		if db.QueryRow("SELECT CONNECTION_ID()").Scan(&again) == nil && again != id {
			fmt.Println("ok, connected again")
		} else {
			fmt.Println("ok")
		}
	case errors.As(err, &failure):
		fmt.Println(failure.Number)
	case errors.Is(err, driver.ErrBadConn):
		fmt.Println("ErrBadConn")
	case errors.Is(err, mysql.ErrInvalidConn):
		fmt.Println("ErrInvalidConn")
	case errors.Is(err, syscall.ECONNREFUSED):
		fmt.Println("refused, connecting again")
	default:
		fmt.Println(err)
	}
}
